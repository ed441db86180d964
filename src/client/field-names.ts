// Fields are snake_case over HTTP and camelCase in the client. Only top-level fields and those of a debounce are renamed, never those of a payload.

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
