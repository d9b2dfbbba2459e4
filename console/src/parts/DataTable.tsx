import { TextInput, VisuallyHidden } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import styles from './DataTable.module.css';
import { Icon } from './Icon';
import { useListSearch } from './useListSearch';

/** The name of the column at the right that says what can be done with a row. */
export const ACTIONS = 'Actions';

export interface Column<Row> {
  name: string;
  cell: (row: Row) => ReactNode;
  /** What rows are ordered by; a column without one cannot be ordered by. */
  order?: (row: Row) => string | number;
}

export interface TableProps<Row> {
  /** What the rows are, for those who do not see the heading above. */
  label: string;
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  columns: readonly Column<Row>[];
  /** What will be here, and how to get it. */
  empty: ReactNode;
  /** What a row is found by; without it there is no filter. */
  words?: (row: Row) => string;
  /** Whether the list has more rows on other pages. */
  isPart?: boolean;
}

export function DataTable<Row>(props: TableProps<Row>) {
  const { label, rows, rowKey, columns, empty, words, isPart = false } = props;
  const [search, setSearch] = useListSearch();
  // The address follows what is typed; the other way round letters would get lost.
  const [typed, setTyped] = useState(search.q ?? '');
  const wanted = typed.toLowerCase();
  const found = words ? rows.filter((row) => words(row).toLowerCase().includes(wanted)) : rows;
  const shown = sorted(found, columns, search.sort);
  if (rows.length === 0) return <div className={styles.empty}>{empty}</div>;
  return (
    <>
      {words && (
        <TextInput
          label={`Filter ${label}`}
          description={isPart && 'Looks at this page of the list only.'}
          type="search"
          maw={320}
          value={typed}
          onChange={(event) => {
            const q = event.currentTarget.value;
            setTyped(q);
            setSearch({ q: q === '' ? undefined : q });
          }}
        />
      )}
      <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
        {/* The roles are said because the card form of a phone takes them away. */}
        <table className={styles.table} role="table">
          <thead>
            <tr>
              {columns.map((column) => (
                <Head
                  key={column.name}
                  column={column}
                  sort={search.sort}
                  onSort={(sort) => setSearch({ sort })}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={rowKey(row)} role="row">
                {columns.map((column) => (
                  <td
                    key={column.name}
                    role="cell"
                    data-name={column.name}
                    className={column.name === ACTIONS ? styles.menu : undefined}
                  >
                    <div>{column.cell(row)}</div>
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {shown.length === 0 && <div className={styles.empty}>Nothing here contains “{typed}”.</div>}
      </div>
    </>
  );
}

interface HeadProps<Row> {
  column: Column<Row>;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
}

function Head<Row>({ column, sort, onSort }: HeadProps<Row>) {
  if (column.name === ACTIONS) {
    return (
      <th scope="col">
        <VisuallyHidden>{ACTIONS}</VisuallyHidden>
      </th>
    );
  }
  if (!column.order) return <th scope="col">{column.name}</th>;
  const isUp = sort === column.name;
  const isDown = sort === `-${column.name}`;
  const next = isUp ? `-${column.name}` : isDown ? undefined : column.name;
  return (
    <th scope="col" aria-sort={isUp ? 'ascending' : isDown ? 'descending' : 'none'}>
      <button type="button" className={styles.sort} onClick={() => onSort(next)}>
        {column.name}
        {isUp && <Icon name="up" size={12} />}
        {isDown && <Icon name="down" size={12} />}
      </button>
    </th>
  );
}

function sorted<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  sort: string | undefined,
): readonly Row[] {
  const isDown = sort?.startsWith('-') ?? false;
  const name = isDown ? sort?.slice(1) : sort;
  const order = columns.find((column) => column.name === name)?.order;
  if (!order) return rows;
  const compare = (left: Row, right: Row) => {
    const [a, b] = [order(left), order(right)];
    if (typeof a === 'string' && typeof b === 'string') return a.localeCompare(b);
    return Number(a) - Number(b);
  };
  return rows.toSorted((left, right) => (isDown ? compare(right, left) : compare(left, right)));
}
