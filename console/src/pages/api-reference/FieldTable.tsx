import styles from './ApiReference.module.css';
import type { Field } from './reading';
import { Words } from './Words';

interface Props {
  title: string;
  /** Of which call, for those who do not see where it stands. */
  of: string;
  about?: string;
  fields: readonly Field[];
}

/** Names with their kind and what they are. */
export function FieldTable({ title, of, about = '', fields }: Props) {
  return (
    <div>
      <p className={styles.answer}>
        <b>{title}</b> <Words text={about} />
      </p>
      {fields.length > 0 && (
        <div className={styles.scroll} role="region" aria-label={`${title} of ${of}`} tabIndex={0}>
          <table className={styles.fields}>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Kind</th>
                <th scope="col">What it is</th>
              </tr>
            </thead>
            <tbody>
              {fields.map((field) => (
                <tr key={field.name}>
                  <td>
                    <code>{field.name}</code>
                    {field.isRequired && ' required'}
                  </td>
                  <td>{field.kind}</td>
                  <td>
                    <Words text={field.about} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
