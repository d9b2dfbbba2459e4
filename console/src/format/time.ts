const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const steps: readonly [number, string][] = [
  [365 * DAY, 'year'],
  [30 * DAY, 'month'],
  [DAY, 'day'],
  [HOUR, 'hour'],
  [MINUTE, 'minute'],
];

/** How long ago something was, in the largest unit that fits. */
export function ago(at: string, now: number): string {
  const seconds = Math.round((now - Date.parse(at)) / 1000);
  // Clocks of browsers go wrong; what has just happened must not lie in the future.
  if (seconds < 10) return 'just now';
  for (const [size, unit] of steps) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${unit}${count === 1 ? '' : 's'} ago`;
  }
  return `${seconds} seconds ago`;
}

/** A time with its zone, for those who have to be exact. */
export const absolute = (at: string): string =>
  new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/** What is left until a time, as a clock shows it: `1:05:09`, `4:30`, `0:07`. */
export function countdown(until: number, now: number): string {
  const left = Math.max(0, Math.ceil((until - now) / 1000));
  const two = (part: number) => String(part).padStart(2, '0');
  const hours = Math.floor(left / HOUR);
  const minutes = Math.floor((left % HOUR) / MINUTE);
  const seconds = two(left % MINUTE);
  return hours > 0 ? `${hours}:${two(minutes)}:${seconds}` : `${minutes}:${seconds}`;
}

/** A number of seconds as people say it: `90 s`, `10 min`, `8 h`. */
export function span(seconds: number): string {
  if (seconds >= HOUR && seconds % HOUR === 0) return `${seconds / HOUR} h`;
  if (seconds >= MINUTE && seconds % MINUTE === 0) return `${seconds / MINUTE} min`;
  return `${seconds} s`;
}

/** How long something took: `0.4 s`, `4.2 s`, `1 min 5 s`. */
export function took(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < MINUTE) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / MINUTE)} min ${whole % MINUTE} s`;
}
