import { Button, Group, Modal, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { FailureNote } from './FailureNote';

interface Props {
  isOpen: boolean;
  /** What is asked, with the name of the thing. */
  title: string;
  /** What will happen, and what will not. */
  children: ReactNode;
  /** What the button does. */
  action: string;
  isBusy: boolean;
  error: unknown;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks before something that cannot simply be taken back. */
export function Confirm(props: Props) {
  return (
    <Modal
      opened={props.isOpen}
      onClose={props.onClose}
      title={props.title}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <div>{props.children}</div>
        <FailureNote error={props.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={props.onClose}>
            Cancel
          </Button>
          <Button color="red.9" loading={props.isBusy} onClick={props.onConfirm}>
            {props.action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
