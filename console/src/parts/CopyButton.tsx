import { Button } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { Icon } from './Icon';

/** Copies a longer text that stands beside it. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const clipboard = useClipboard({ timeout: 1500 });
  if (clipboard.error !== null) return <span role="alert">Select it by hand to copy it.</span>;
  return (
    <Button
      variant="subtle"
      size="compact-xs"
      leftSection={<Icon name={clipboard.copied ? 'good' : 'copy'} size={12} />}
      aria-label={clipboard.copied ? `Copied ${what}` : `Copy ${what}`}
      onClick={() => clipboard.copy(text)}
    >
      {clipboard.copied ? 'Copied' : 'Copy'}
    </Button>
  );
}
