import { useBlocker } from '@tanstack/react-router';

/** Asks before a page with unsaved work is left. */
export function useLeaveGuard(isDirty: boolean) {
  useBlocker({
    shouldBlockFn: () => isDirty && !window.confirm('Leave without saving your changes?'),
    enableBeforeUnload: isDirty,
    disabled: !isDirty,
  });
}
