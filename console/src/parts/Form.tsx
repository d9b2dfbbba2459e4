import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { FailureNote } from './FailureNote';

interface Props {
  /** What the button does. */
  action: string;
  isBusy: boolean;
  error: unknown;
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
        <FailureNote error={props.error} />
        <Group>
          <Button type="submit" loading={props.isBusy} disabled={props.isDisabled ?? false}>
            {props.action}
          </Button>
          <span role="status">{props.done}</span>
        </Group>
      </Stack>
    </form>
  );
}
