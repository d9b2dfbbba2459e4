import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Change } from '../api/change';
import { FailureNote } from './FailureNote';

interface Props {
  /** What the button does. */
  action: string;
  /** What it asks of the API. */
  change: Change;
  /** What is said after it worked. */
  done?: string | null;
  isDisabled?: boolean;
  onSubmit: () => void;
  children: ReactNode;
}

/** Fields with one button below, and what came of it beside the button. */
export function Form(props: Props) {
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        props.onSubmit();
      }}
    >
      <Stack gap="sm">
        {props.children}
        <FailureNote error={props.change.error} />
        <Group>
          <Button
            type="submit"
            loading={props.change.isPending}
            disabled={props.isDisabled ?? false}
          >
            {props.action}
          </Button>
          <span role="status">{props.done}</span>
        </Group>
      </Stack>
    </form>
  );
}
