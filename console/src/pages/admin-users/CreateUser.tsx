import { Checkbox, NativeSelect, PasswordInput, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../api/client';
import { useChange } from '../../api/change';
import { workspacesQuery } from '../../api/queries';
import { type RoleName, roleOf, ROLES } from '../../api/views';
import { FailureNote } from '../../parts/FailureNote';
import { Fields } from '../../parts/Fields';
import { Form } from '../../parts/Form';
import { Panel } from '../../parts/Page';
import { useDraft } from '../../parts/useDraft';

const NOBODY = {
  email: '',
  name: '',
  password: '',
  is_system_admin: false,
  workspace_id: '',
  role: 'editor' as RoleName,
};

export function CreateUser() {
  const workspaces = useQuery(workspacesQuery());
  const { values, set, reset } = useDraft(NOBODY);
  const create = useChange(() => {
    const { workspace_id, role, ...person } = values;
    const membership = workspace_id === '' ? {} : { workspace_id, role };
    return answer(api.POST('/api/v1/admin/users', { body: { ...person, ...membership } }));
  }, [['users']]);
  const isReady = values.email !== '' && values.name !== '' && values.password !== '';
  return (
    <Panel title="Make a user">
      <Form
        action="Make user"
        change={create}
        done={create.data ? `${create.data.email} can sign in now.` : null}
        isDisabled={!isReady}
        onSubmit={() => create.mutate(undefined, { onSuccess: () => reset(NOBODY) })}
      >
        {!workspaces.data && <FailureNote error={workspaces.error} />}
        <Fields>
          <TextInput
            label="E-mail"
            type="email"
            autoComplete="off"
            value={values.email}
            onChange={(event) => set({ email: event.currentTarget.value })}
          />
          <TextInput
            label="Name"
            autoComplete="off"
            value={values.name}
            onChange={(event) => set({ name: event.currentTarget.value })}
          />
          <PasswordInput
            label="First password"
            description="12 characters at least. You tell it; they can change it."
            autoComplete="new-password"
            value={values.password}
            onChange={(event) => set({ password: event.currentTarget.value })}
          />
          <NativeSelect
            label="Workspace"
            value={values.workspace_id}
            data={[
              { value: '', label: 'None yet' },
              ...(workspaces.data?.items ?? []).map((one) => ({ value: one.id, label: one.name })),
            ]}
            onChange={(event) => set({ workspace_id: event.currentTarget.value })}
          />
          <NativeSelect
            label="Role in the workspace"
            value={values.role}
            disabled={values.workspace_id === ''}
            data={[...ROLES]}
            onChange={(event) => set({ role: roleOf(event.currentTarget.value) })}
          />
        </Fields>
        <Checkbox
          label="System admin"
          checked={values.is_system_admin}
          onChange={(event) => set({ is_system_admin: event.currentTarget.checked })}
        />
      </Form>
    </Panel>
  );
}
