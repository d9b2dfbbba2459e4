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
  /** Whether it cannot be done; what is asked says why. */
  isDisabled?: boolean;
  onClose: () => void;
  /** What comes after it is done; without it the question closes. */
  onDone?: () => void;
}

/** Asks before something that cannot simply be taken back. */
export function Confirm(props: Props) {
  const { title, children, action, change, isDisabled = false, onClose, onDone = onClose } = props;
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
            disabled={isDisabled}
            loading={change.isPending}
            onClick={() => change.mutate(undefined, { onSuccess: onDone })}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
