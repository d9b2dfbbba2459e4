import styles from './Composer.module.css';

interface Example {
  name: string;
  text: string;
}

/** What somebody could ask for, each possible with nothing attached. */
const WORDS: readonly Example[] = [
  'Make a workbook with the repayments of a loan of 200 000 at 3.5 % over 20 years',
  'Draw sine and cosine into one chart as a PNG',
  'Make five slides on how to run a good meeting',
].map((text) => ({ name: text, text }));

const CODE: readonly Example[] = [
  { name: 'Add up squares', text: 'print(sum(n * n for n in range(1, 101)))' },
  {
    name: 'Save a workbook',
    text: `import pandas as pd
squares = pd.DataFrame({'n': range(1, 11)})
squares['square'] = squares['n'] ** 2
squares.to_excel('squares.xlsx', index=False)
squares`,
  },
  {
    name: 'Draw a chart',
    text: `import matplotlib.pyplot as plt
plt.plot([1, 4, 9, 16, 25])
plt.savefig('chart.png')`,
  },
];

interface Props {
  isCode: boolean;
  /** Puts it where it can be changed before it is sent. */
  onChoose: (text: string) => void;
}

/** A beginning for those who do not know yet what to ask. */
export const Examples = ({ isCode, onChoose }: Props) => (
  <div className={styles.examples} role="group" aria-label="Examples">
    {(isCode ? CODE : WORDS).map(({ name, text }) => (
      <button key={name} type="button" className={styles.example} onClick={() => onChoose(text)}>
        {name}
      </button>
    ))}
  </div>
);
