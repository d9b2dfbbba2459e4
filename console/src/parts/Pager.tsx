import { Button, Group } from '@mantine/core';

interface Props {
  cursor: string | undefined;
  next: string | null | undefined;
  onGo: (cursor: string | undefined) => void;
}

/** The way to the next page of a long list, and back to its beginning. */
export function Pager({ cursor, next, onGo }: Props) {
  if (cursor === undefined && !next) return null;
  return (
    <Group justify="flex-end">
      {cursor !== undefined && (
        <Button variant="default" onClick={() => onGo(undefined)}>
          First page
        </Button>
      )}
      {next && (
        <Button variant="default" onClick={() => onGo(next)}>
          Next page
        </Button>
      )}
    </Group>
  );
}
