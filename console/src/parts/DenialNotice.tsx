import type { Denied } from '../api/views';
import { Notice } from './Notice';
import { sentence } from '../format/sentence';

/** What keeps code from running now, what to do, and the name that programs see. */
export const DenialNotice = ({ denial }: { denial: Denied }) => (
  <Notice tone="warn" title={sentence(denial.message)}>
    {sentence(denial.fix)} <code>{denial.name}</code>
  </Notice>
);
