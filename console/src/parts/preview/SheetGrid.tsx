import { VisuallyHidden } from '@mantine/core';
import { type CSSProperties, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Sheet, SheetCell } from '../../api/views';
import {
  cellsSeen,
  columnsSeen,
  GUTTER,
  mergesOf,
  offsetsOf,
  type Placed,
  ROW,
  rowsSeen,
  type Seen,
  widthsOf,
} from './layout';
import styles from './SheetGrid.module.css';

/** A sheet as a spreadsheet shows it. Only the cells that are seen are in the page. */
export function SheetGrid({ sheet }: { sheet: Sheet }) {
  const offsets = useMemo(() => offsetsOf(widthsOf(sheet)), [sheet]);
  const merges = useMemo(() => mergesOf(sheet), [sheet]);
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<Seen>({ top: 0, left: 0, width: 800, height: 600 });
  const look = () => {
    const { current } = box;
    if (current === null) return;
    setSeen({
      top: current.scrollTop,
      left: current.scrollLeft,
      width: current.clientWidth,
      height: current.clientHeight,
    });
  };
  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const observer = new ResizeObserver(look);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const rows = rowsSeen(seen, sheet.rows.length);
  const columns = columnsSeen(seen, offsets);
  const cells = cellsSeen(merges, rows, columns);
  const width = GUTTER + (offsets.at(-1) ?? 0);
  return (
    <div
      ref={box}
      className={styles.scroll}
      tabIndex={0}
      role="table"
      aria-label={`Sheet ${sheet.name}`}
      aria-rowcount={sheet.rows.length + 1}
      aria-colcount={sheet.columns.length + 1}
      onScroll={look}
    >
      <div
        className={styles.canvas}
        role="rowgroup"
        style={{ width, height: ROW * (sheet.rows.length + 1) }}
      >
        <div className={styles.head} role="row" aria-rowindex={1} style={{ width }}>
          <div className={styles.number} role="columnheader" aria-colindex={1}>
            <VisuallyHidden>Row</VisuallyHidden>
          </div>
          {letters(sheet, offsets, columns)}
        </div>
        {[...cells].map(([row, placed]) => (
          <div
            key={row}
            className={styles.row}
            role="row"
            aria-rowindex={row + 2}
            style={{ top: ROW * (row + 1), width }}
          >
            <div className={styles.number} role="rowheader" aria-colindex={1}>
              {row + 1}
            </div>
            {placed.map((cell) => (
              <Cell key={cell.column} sheet={sheet} cell={cell} offsets={offsets} />
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

const letters = (sheet: Sheet, offsets: readonly number[], { first, end }: Columns) =>
  sheet.columns.slice(first, end).map((letter, index) => (
    <div
      key={letter}
      className={styles.letter}
      role="columnheader"
      aria-colindex={first + index + 2}
      style={{
        left: GUTTER + left(offsets, first + index),
        width: widthOf(offsets, first + index, 1),
      }}
    >
      {letter}
    </div>
  ));

type Columns = ReturnType<typeof columnsSeen>;

const left = (offsets: readonly number[], column: number) => offsets[column] ?? 0;

const widthOf = (offsets: readonly number[], column: number, count: number) =>
  left(offsets, column + count) - left(offsets, column);

interface CellProps {
  sheet: Sheet;
  cell: Placed;
  offsets: readonly number[];
}

function Cell({ sheet, cell, offsets }: CellProps) {
  const { row, column, rows, columns } = cell;
  const content = sheet.rows[row]?.[column] ?? null;
  const isTitle = sheet.first_row_is_header && row === 0;
  const style: CSSProperties = {
    left: GUTTER + left(offsets, column),
    width: widthOf(offsets, column, columns),
    height: ROW * rows,
  };
  const classes = [
    styles.cell,
    rows > 1 || columns > 1 ? styles.merged : '',
    isTitle ? styles.title : '',
    content?.t === 'e' ? styles.error : '',
    styles[sideOf(content)] ?? '',
  ];
  return (
    <div
      className={classes.join(' ')}
      role="cell"
      aria-colindex={column + 2}
      {...(columns > 1 ? { 'aria-colspan': columns } : {})}
      {...(rows > 1 ? { 'aria-rowspan': rows } : {})}
      style={style}
      title={content?.v}
    >
      {content?.v}
    </div>
  );
}

/** Numbers and dates stand at the right, as in a spreadsheet, where nothing else is said. */
function sideOf(cell: SheetCell | null): 'left' | 'right' | 'center' {
  if (cell?.a) return cell.a;
  if (cell?.t === 'n' || cell?.t === 'd') return 'right';
  return cell?.t === 'b' || cell?.t === 'e' ? 'center' : 'left';
}
