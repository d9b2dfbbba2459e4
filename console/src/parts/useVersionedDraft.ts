import { useState } from 'react';
import { type Draft, useDraft } from './useDraft';
import { useLeaveGuard } from './useLeaveGuard';

/** What the server has, and at which version. */
export interface Versioned<Values> {
  version: number;
  values: Values;
}

interface VersionedDraft<Values> extends Omit<Draft<Values>, 'reset'> {
  /** The version that the draft began from: one that came meanwhile has to show as a conflict. */
  version: number;
  /** Begins anew from what the server has. */
  begin: (from: Versioned<Values>) => void;
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
  useLeaveGuard(draft.isDirty);
  // Nothing is typed yet, so what came meanwhile takes nothing away.
  if (!draft.isDirty && version !== present.version) begin(present);
  return { ...draft, version, begin };
}
