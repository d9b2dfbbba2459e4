import { Button, Group, TextInput } from '@mantine/core';
import type { AuditFilter } from '../../api/queries';
import { Fields } from '../../parts/Fields';
import { useDraft } from '../../parts/useDraft';
import { fromField, readAuditSearch, toField } from './search';

interface Props {
  search: AuditFilter;
  onFilter: (filter: AuditFilter) => void;
}

export function AuditFilterForm({ search, onFilter }: Props) {
  const { values, set } = useDraft({
    action: search.action ?? '',
    actor: search.actor ?? '',
    since: toField(search.since),
    until: toField(search.until),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const { since, until } = values;
        onFilter(readAuditSearch({ ...values, since: fromField(since), until: fromField(until) }));
      }}
    >
      <Fields>
        <TextInput
          label="Action begins with"
          description="For example profile. or session."
          value={values.action}
          onChange={(event) => set({ action: event.currentTarget.value })}
        />
        <TextInput
          label="Who"
          description="A part of the name"
          value={values.actor}
          onChange={(event) => set({ actor: event.currentTarget.value })}
        />
        <TextInput
          label="Since"
          type="datetime-local"
          value={values.since}
          onChange={(event) => set({ since: event.currentTarget.value })}
        />
        <TextInput
          label="Until"
          type="datetime-local"
          value={values.until}
          onChange={(event) => set({ until: event.currentTarget.value })}
        />
      </Fields>
      <Group mt="sm">
        <Button type="submit">Show entries</Button>
        <Button variant="default" onClick={() => onFilter({})}>
          Clear filter
        </Button>
      </Group>
    </form>
  );
}
