import type { Deployment } from '../api/views';
import { Notice } from './Notice';

/** What the server's environment has taken out of the console's hands. */
export const ReadOnly = ({ deployment }: { deployment: Deployment }) => (
  <>
    {deployment.is_forced_off && (
      <Notice tone="warn" title="Code execution is forced off">
        The server was started with <code>SANDBOX_ENABLED=false</code>. Nothing runs, whatever is
        set here.
      </Notice>
    )}
    {deployment.is_locked && (
      <Notice tone="warn" title="These pages are read-only">
        The server was started with <code>SANDBOX_GUI_CONFIG=false</code>. Every change is refused
        with <code>gui_config_locked</code>, but that code execution can be switched off.
      </Notice>
    )}
  </>
);
