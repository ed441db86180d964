// Reports from time to time that a promise is still pending.

const firstAfterSeconds = 1;
const thenEverySeconds = 10;

export async function whileWaiting<T>(work: Promise<T>, tell: (seconds: number) => void): Promise<T> {
  let seconds = 0;
  let timer: NodeJS.Timeout;
  const tellIn = (more: number) => {
    timer = setTimeout(() => {
      seconds += more;
      tell(seconds);
      tellIn(thenEverySeconds);
    }, more * 1000);
  };
  tellIn(firstAfterSeconds);
  return work.finally(() => clearTimeout(timer));
}
