import { PasswordInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useChange } from '../../api/change';
import { createModel, modelsQuery } from '../../api/models';
import { Form } from '../../parts/Form';
import { useDraft } from '../../parts/useDraft';
import { isComplete, ModelFields, type ModelValues } from './ModelFields';

const EMPTY: ModelValues = {
  name: '',
  base_url: '',
  model: '',
  context_tokens: 32_768,
  connect_timeout_seconds: 10,
  silence_timeout_seconds: 120,
  reply_timeout_seconds: 1_800,
};

/** Makes a model and leads to its page, where it is tested. */
export function AddModel() {
  const navigate = useNavigate();
  const { values, set } = useDraft(EMPTY);
  const [key, setKey] = useState('');
  const create = useChange(
    () => createModel({ ...values, is_default: false, ...(key === '' ? {} : { api_key: key }) }),
    [modelsQuery.queryKey, ['workspace']],
  );
  const submit = () =>
    create.mutate(undefined, {
      onSuccess: ({ id }) =>
        void navigate({ to: '/admin/system/models/$model', params: { model: id } }),
    });
  return (
    <Form action="Add model" change={create} isDisabled={!isComplete(values)} onSubmit={submit}>
      <ModelFields values={values} set={set} />
      <PasswordInput
        label="API key"
        description="Kept encrypted and never shown again. Leave it empty where the endpoint wants none."
        maw={420}
        autoComplete="off"
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
    </Form>
  );
}
