import type { LiveSandbox } from '../../api/views';

/** Whose a sandbox is, for people: one of previews is nobody's. */
export const whose = ({ purpose, user_email }: Pick<LiveSandbox, 'purpose' | 'user_email'>) =>
  user_email ?? (purpose === 'preview' ? 'the previewer' : 'a service');
