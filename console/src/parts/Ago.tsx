import { Tooltip } from '@mantine/core';
import { absolute, ago } from '../format/time';
import { useNow } from './useNow';

/** A time as an age; the exact one shows on hover, focus and touch. */
export function Ago({ at }: { at: string }) {
  const now = useNow(15_000);
  return (
    <Tooltip label={absolute(at)} events={{ hover: true, focus: true, touch: true }}>
      <time dateTime={at} tabIndex={0}>
        {ago(at, now)}
      </time>
    </Tooltip>
  );
}
