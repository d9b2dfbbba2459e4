import { Button, Code, Stack } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import { Notice } from './Notice';

/** A secret that is shown this once. */
export function SecretBox({ title, secret }: { title: string; secret: string }) {
  const clipboard = useClipboard({ timeout: 2000 });
  return (
    <Notice tone="info" title={title}>
      <Stack gap="xs" mt="xs" align="flex-start">
        <Code block data-testid="secret" style={{ overflowWrap: 'anywhere', whiteSpace: 'normal' }}>
          {secret}
        </Code>
        <Button size="xs" onClick={() => clipboard.copy(secret)}>
          {clipboard.copied ? 'Copied' : 'Copy'}
        </Button>
        {clipboard.error !== null && (
          <span role="alert">This browser does not let pages copy here: select it by hand.</span>
        )}
        <span>It is shown this once. Store it before you leave this page.</span>
      </Stack>
    </Notice>
  );
}
