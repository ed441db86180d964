// The `sql` tag: a text of SQL and its parameters. A value between the texts becomes a parameter, and a piece of SQL becomes a
// part of the text.

/** Text, or the value of a parameter. */
type Part = string | { readonly value: unknown };

/** A class, so that no value is ever taken for SQL. */
export class SQL {
  readonly parts: readonly Part[];
  constructor(parts: readonly Part[]) {
    this.parts = parts;
  }
}

/** A parameter whose value comes with each call. */
class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export function sql(texts: TemplateStringsArray, ...values: readonly unknown[]): SQL {
  const after = values.map((value) => (value instanceof SQL ? value.parts : [{ value }]));
  return new SQL(texts.flatMap((text, index) => [text, ...(after[index] ?? [])]));
}

sql.raw = (text: string): SQL => new SQL([text]);
sql.empty = (): SQL => new SQL([]);
sql.identifier = (name: string): SQL => new SQL([`"${name.replaceAll('"', '""')}"`]);
sql.placeholder = (name: string): Placeholder => new Placeholder(name);
sql.join = (pieces: readonly SQL[], separator: string): SQL =>
  new SQL(pieces.flatMap(({ parts }, index) => (index === 0 ? parts : [separator, ...parts])));

/** The text with $1, $2 and so on, and their values in that order. */
export function textOf({ parts }: SQL): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const text = parts.map((part) => (typeof part === "string" ? part : `$${values.push(part.value)}`));
  return { text: text.join(""), values };
}

export function fillPlaceholders(values: readonly unknown[], given: Record<string, unknown>): unknown[] {
  return values.map((value) => (value instanceof Placeholder ? given[value.name] : value));
}
