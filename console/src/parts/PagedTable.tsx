import { DataTable, type TableProps } from './DataTable';
import { Pager } from './Pager';

interface Props<Row> extends Omit<TableProps<Row>, 'rows' | 'isPart'> {
  page: { items: readonly Row[]; next_cursor?: string | null };
  /** Which page it is; none is the first. */
  cursor: string | undefined;
  onGo: (cursor: string | undefined) => void;
}

/** One page of a list that may be long. */
export const PagedTable = <Row,>({ page, cursor, onGo, ...table }: Props<Row>) => (
  <>
    <DataTable
      {...table}
      rows={page.items}
      isPart={cursor !== undefined || Boolean(page.next_cursor)}
    />
    <Pager cursor={cursor} next={page.next_cursor} onGo={onGo} />
  </>
);
