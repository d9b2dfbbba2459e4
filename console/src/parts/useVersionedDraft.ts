import { useState } from 'react';
import { type Draft, useDraft } from './useDraft';
import { useLeaveGuard } from './useLeaveGuard';

/** What the server has, and at which version. */
export interface Versioned<Values> {
  version: number;
  values: Values;
}

export interface VersionedDraft<Values> extends Omit<Draft<Values>, 'reset'> {
  /** The version that the draft began from: one that came meanwhile has to show as a conflict. */
  version: number;
  /** Begins anew from what the server has. */
  begin: (from: Versioned<Values>) => void;
  /**
   * Goes on over a version that this page has made beside the draft, of something that is not in
   * the draft: that is no conflict. Anybody else's in between still is.
   */
  goOn: (from: number, to: number) => void;
}

/** A draft of something that others may change meanwhile. Leaving it unsaved asks. */
export function useVersionedDraft<Values extends object>(
  present: Versioned<Values>,
): VersionedDraft<Values> {
  const [version, setVersion] = useState(present.version);
  const { reset, ...draft } = useDraft(present.values);
  const begin = (from: Versioned<Values>) => {
    setVersion(from.version);
    reset(from.values);
  };
  const goOn = (from: number, to: number) => setVersion((old) => (old === from ? to : old));
  useLeaveGuard(draft.isDirty);
  // Nothing is typed yet, so what came meanwhile takes nothing away.
  if (!draft.isDirty && version < present.version) begin(present);
  return { ...draft, version, begin, goOn };
}
