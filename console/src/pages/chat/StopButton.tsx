import { Button, type ButtonProps } from '@mantine/core';
import { Icon } from '../../parts/Icon';
import type { Stop } from './useStop';

/** Ends the reply that runs. */
export const StopButton = ({ stop, ...look }: { stop: Stop } & Omit<ButtonProps, 'children'>) => (
  <Button
    {...look}
    variant="default"
    disabled={stop.isStopping}
    leftSection={<Icon name="stop" size={12} />}
    onClick={stop.go}
  >
    {stop.isStopping ? 'Stopping' : 'Stop'}
  </Button>
);
