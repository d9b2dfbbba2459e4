import { NativeSelect } from '@mantine/core';
import { Link, type LinkProps, useNavigate, useParams } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Session } from '../api/views';
import styles from './Frame.module.css';
import { SignOut } from './SignOut';

interface Props {
  session: Session;
  /** Called when the person goes somewhere, so that a drawer closes. */
  onGo: () => void;
}

export function Rail({ session, onGo }: Props) {
  const { memberships, user } = session;
  const named = useParams({ strict: false, select: (params) => params.workspace });
  const isMember = memberships.some((one) => one.workspace_id === named);
  const workspace = isMember ? named : memberships[0]?.workspace_id;
  return (
    <div className={styles.rail} onClick={onGo}>
      {workspace !== undefined && (
        <>
          <Switcher session={session} workspace={workspace} onGo={onGo} />
          <Group name="Work">
            <RailLink to="/w/$workspace/chat" params={{ workspace }}>
              Chat
            </RailLink>
            <RailLink to="/w/$workspace/artifacts" params={{ workspace }}>
              Artifacts
            </RailLink>
            <RailLink to="/w/$workspace/knowledge" params={{ workspace }}>
              Knowledge
            </RailLink>
          </Group>
          <Group name="Workspace">
            <RailLink to="/w/$workspace/members" params={{ workspace }}>
              Members
            </RailLink>
            <RailLink to="/w/$workspace/code-execution" params={{ workspace }}>
              Code execution
            </RailLink>
            <RailLink to="/w/$workspace/sandboxes" params={{ workspace }}>
              Sandboxes
            </RailLink>
          </Group>
        </>
      )}
      {user.is_system_admin && (
        <Group name="Admin">
          <RailLink to="/admin/system/sandbox">System → Sandbox</RailLink>
          <RailLink to="/admin/system/models">System → Models</RailLink>
          <RailLink to="/admin/sandboxes">Sandboxes live</RailLink>
          <RailLink to="/admin/workspaces">Workspaces</RailLink>
          <RailLink to="/admin/users">Users</RailLink>
          <RailLink to="/admin/audit">Audit logs</RailLink>
        </Group>
      )}
      <div className={styles.spring} />
      <Group name="Account">
        <span className={styles.who}>{user.email}</span>
        <RailLink to="/account">Your account</RailLink>
        <RailLink to="/api/v1/docs">API reference</RailLink>
        <SignOut />
      </Group>
    </div>
  );
}

function Group({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.group} role="group" aria-label={name}>
      <span className={styles.heading}>{name}</span>
      {children}
    </div>
  );
}

function RailLink(props: LinkProps & { children: ReactNode }) {
  return <Link {...props} className={styles.link ?? ''} activeOptions={{ includeSearch: false }} />;
}

function Switcher({ session, workspace, onGo }: Props & { workspace: string }) {
  const navigate = useNavigate();
  return (
    <NativeSelect
      label="Switch workspace"
      value={workspace}
      data={session.memberships.map((one) => ({ value: one.workspace_id, label: one.name }))}
      // Opening the list is not going somewhere.
      onClick={(event) => event.stopPropagation()}
      onChange={(event) => {
        onGo();
        void navigate({
          to: '/w/$workspace/chat',
          params: { workspace: event.currentTarget.value },
        });
      }}
    />
  );
}
