// Fields are snake_case over HTTP and camelCase here. Only the outermost ones: what is in a payload is the caller's.

type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

export type CamelCased<Fields> = {
  [Name in keyof Fields as CamelCase<Name> & string]: Fields[Name];
};

export function camelCased<Fields extends object>(fields: Fields): CamelCased<Fields> {
  return renamed(fields, (name) => name.replace(/_./g, (part) => part.slice(1).toUpperCase())) as never;
}

export function snakeCased(fields: object): object {
  return renamed(fields, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

function renamed(fields: object, rename: (name: string) => string): object {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [rename(name), value]));
}
