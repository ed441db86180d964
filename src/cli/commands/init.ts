export async function init(_: string[]): Promise<void> {}
