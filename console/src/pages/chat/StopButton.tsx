import { Button, type ButtonProps } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import type { Stop } from './useStop';

interface Props extends Omit<ButtonProps, 'children'> {
  stop: Stop;
  /** Called after it was asked for. */
  onAsked?: () => void;
}

/** Ends the reply that runs. */
export const StopButton = ({ stop, onAsked, ...look }: Props) => (
  <Button
    {...look}
    variant="default"
    disabled={stop.isStopping}
    leftSection={<Icon name="stop" size={12} />}
    onClick={() => {
      stop.go();
      onAsked?.();
    }}
  >
    {stop.isStopping ? 'Stopping' : 'Stop'}
  </Button>
);
