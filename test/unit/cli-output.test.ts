// What a command prints on a terminal and in a pipe.
import { expect, test } from "vitest";
import { type Column, createOutput } from "../../src/cli/output/output.ts";

const columns: Column<string>[] = [
  ["NAME", (name) => name],
  ["LENGTH", (name) => name.length],
];

function printed(stdout: { isTTY: boolean; columns?: number }): string {
  const texts: string[] = [];
  const write = (text: string) => texts.push(text) > 0;
  createOutput({ stdout: { ...stdout, write }, stderr: { write } } as never).table(["default"], columns);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the header is bold
  return texts.join("").replace(/\x1b\[\d+m/g, "");
}

test.each([
  ["that knows its width", { isTTY: true, columns: 80 }, "NAME     LENGTH\ndefault       7\n"],
  ["that does not know its width", { isTTY: true, columns: 0 }, "NAME     LENGTH\ndefault       7\n"],
  ["that is narrow", { isTTY: true, columns: 12 }, "NAME     LE…\ndefault    …\n"],
])("a terminal %s gets a table", (_, stdout, text) => {
  expect(printed(stdout)).toBe(text);
});

test("a pipe gets tabs, no header, and nothing is cut", () => {
  expect(printed({ isTTY: false })).toBe("default\t7\n");
});
