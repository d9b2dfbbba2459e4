import type { CheckRecord } from '../api/views';
import { Ago } from './Ago';
import { State } from './State';

/** What came of a proof the last time, and when that was. */
export const Outcome = ({ check }: { check: CheckRecord | null | undefined }) =>
  check ? (
    <>
      <State tone={check.is_passed ? 'good' : 'bad'}>{check.is_passed ? 'passed' : 'failed'}</State>{' '}
      <Ago at={check.taken_at} />
    </>
  ) : (
    <State tone="warn">never run</State>
  );
