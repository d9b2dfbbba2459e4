import { Button } from '@mantine/core';
import { Failure } from '../api/failure';
import { Notice } from './Notice';

/** Somebody else saved in the meantime; what was typed here would take theirs away. */
export function Conflict({ error, onReload }: { error: unknown; onReload: () => void }) {
  if (!(error instanceof Failure) || error.code !== 'changed_meanwhile') return null;
  return (
    <Notice tone="warn" title="Somebody else changed this while you were typing">
      <p>Load the present values, look at them, and make your change again.</p>
      <Button variant="default" size="xs" onClick={onReload}>
        Load the present values
      </Button>
    </Notice>
  );
}
