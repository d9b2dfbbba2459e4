import { Button, Group, Modal, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import type { PlainChange } from '../api/change';
import { FailureNote } from './FailureNote';

interface Props {
  /** What is asked, with the name of the thing. */
  title: string;
  /** What will happen, and what will not. */
  children: ReactNode;
  /** What the button does. */
  action: string;
  change: PlainChange;
  onClose: () => void;
}

/** Asks before something that cannot simply be taken back; closes when it is done. */
export function Confirm({ title, children, action, change, onClose }: Props) {
  return (
    <Modal opened onClose={onClose} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <div>{children}</div>
        <FailureNote error={change.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            color="red.9"
            loading={change.isPending}
            onClick={() => change.mutate(undefined, { onSuccess: onClose })}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
