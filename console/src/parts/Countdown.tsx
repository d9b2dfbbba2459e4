import { countdown } from '../format/time';
import { useNow } from './useNow';

/** How long there is until a time, in milliseconds since 1970. */
export function Countdown({ until }: { until: number }) {
  const now = useNow(1000);
  return <span>{countdown(until, now)}</span>;
}
