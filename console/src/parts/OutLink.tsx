import type { ReactNode } from 'react';
import { safeLink } from './links';

/** A link that a model, a file or a program wrote: its words alone where it leads nowhere good. */
export function OutLink({ to, children }: { to: string | undefined; children: ReactNode }) {
  const href = safeLink(to);
  if (href === null) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}
