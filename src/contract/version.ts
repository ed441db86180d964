// The version of the API document. test/unit/deployment-files.test.ts compares it with package.json: the Worker cannot read that.
export const version = "0.1.0";
