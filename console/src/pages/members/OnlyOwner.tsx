import { Notice } from '../../parts/Notice';

/** Why the only owner of a workspace stays that, and what to do. */
export const OnlyOwner = ({ name, isSelf }: { name: string; isSelf: boolean }) => (
  <Notice tone="warn" title={isSelf ? 'You are the only owner' : `${name} is the only owner`}>
    A workspace is never without one. Make somebody else an owner first.
  </Notice>
);
