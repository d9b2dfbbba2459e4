import { Button } from '@mantine/core';
import { Failure } from '../api/failure';
import { Notice } from './Notice';

/** Another change was saved in the meantime; what was typed here would take it away. */
export function Conflict({ error, onReload }: { error: unknown; onReload: () => void }) {
  if (!(error instanceof Failure) || error.code !== 'changed_meanwhile') return null;
  return (
    <Notice tone="warn" title="This was changed while you were typing">
      <p>Load the present values, look at them, and make your change again.</p>
      <Button variant="default" size="xs" onClick={onReload}>
        Load the present values
      </Button>
    </Notice>
  );
}
