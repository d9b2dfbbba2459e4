import { ActionIcon, Menu } from '@mantine/core';

export interface RowAction {
  label: string;
  onClick: () => void;
  isDangerous?: boolean;
}

/** What can be done with one row. */
export function RowMenu({ of, actions }: { of: string; actions: readonly RowAction[] }) {
  if (actions.length === 0) return null;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="default" aria-label={`Actions for ${of}`}>
          ⋯
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map((action) => (
          <Menu.Item
            key={action.label}
            onClick={action.onClick}
            {...(action.isDangerous ? { c: 'var(--gb-bad)' } : {})}
          >
            {action.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
