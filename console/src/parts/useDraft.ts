import { useState } from 'react';

export interface Draft<Values> {
  values: Values;
  isDirty: boolean;
  set: (change: Partial<Values>) => void;
  /** Begins anew from these values. */
  reset: (values: Values) => void;
}

/**
 * What a person has typed into a form over what it began with. News from the server do not touch
 * it: they would take away what somebody is typing.
 */
export function useDraft<Values extends object>(begin: Values): Draft<Values> {
  const [base, setBase] = useState(begin);
  const [values, setValues] = useState(begin);
  return {
    values,
    isDirty: JSON.stringify(values) !== JSON.stringify(base),
    set: (change) => setValues((old) => ({ ...old, ...change })),
    reset: (next) => {
      setBase(next);
      setValues(next);
    },
  };
}
