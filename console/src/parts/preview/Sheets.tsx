import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useId, useState } from 'react';
import type { PreviewSheet } from '../../api/views';
import { sheetQuery } from '../../api/files';
import { Loaded } from '../Loaded';
import { sentence } from '../../format/sentence';
import panel from './PreviewPanel.module.css';
import { SheetGrid } from './SheetGrid';
import styles from './Sheets.module.css';

interface Props {
  preview: string;
  sheets: readonly PreviewSheet[];
  /** What is shown of sheets that have more. */
  cut: string | null;
}

/** A workbook, with a tab for each sheet below it. */
export function Sheets({ preview, sheets, cut }: Props) {
  const [chosen, setChosen] = useState(sheets[0]?.number ?? 1);
  const id = useId();
  const sheet = sheets.find(({ number }) => number === chosen) ?? sheets[0];
  const query = useQuery({
    ...sheetQuery(preview, sheet?.number ?? 1),
    enabled: sheet !== undefined,
  });
  if (!sheet) return null;
  const go = (event: KeyboardEvent<HTMLElement>) => {
    const at = sheets.indexOf(sheet);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: sheets.length - 1 }[
      event.key
    ];
    const next = to === undefined ? undefined : sheets[(to + sheets.length) % sheets.length];
    if (!next) return;
    event.preventDefault();
    setChosen(next.number);
    document.getElementById(`${id}-${next.number}`)?.focus();
  };
  return (
    <div className={styles.sheets}>
      {sheet.is_cut && (
        <div className={panel.bar} role="status">
          {sentence(cut ?? 'This is the first part of the sheet')} The download has all of it.
        </div>
      )}
      <div
        className={styles.shown}
        id={`${id}-panel`}
        {...(sheets.length > 1
          ? { role: 'tabpanel', 'aria-labelledby': `${id}-${sheet.number}` }
          : {})}
      >
        <Loaded query={query}>
          {(data) => <SheetGrid key={`${preview} ${sheet.number}`} sheet={data} />}
        </Loaded>
      </div>
      {sheets.length > 1 && (
        <div className={styles.tabs} role="tablist" aria-label="Sheets" onKeyDown={go}>
          {sheets.map(({ number, name }) => (
            <button
              key={number}
              id={`${id}-${number}`}
              type="button"
              role="tab"
              className={styles.tab}
              aria-selected={number === sheet.number}
              aria-controls={`${id}-panel`}
              tabIndex={number === sheet.number ? 0 : -1}
              onClick={() => setChosen(number)}
            >
              {name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
