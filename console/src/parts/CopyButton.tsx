import { Button } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { Icon } from './Icon';

interface Props {
  text: string;
  /** What it is, such as `Python`. */
  what: string;
  /** Whether that is to be seen too, where it does not stand beside it. */
  isNamed?: boolean;
}

/** Copies a longer text. */
export function CopyButton({ text, what, isNamed = false }: Props) {
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
      {clipboard.copied ? 'Copied' : 'Copy'} {isNamed && what}
    </Button>
  );
}
