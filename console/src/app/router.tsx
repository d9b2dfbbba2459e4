import { type QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  notFound,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { Failure } from '../api/failure';
import { sessionQuery, setupQuery } from '../api/queries';
import { Frame } from '../frame/Frame';
import { NotFound, RouteFailed } from '../frame/Lost';
import { AccountPage } from '../pages/account/AccountPage';
import { ApiReferencePage } from '../pages/api-reference/ApiReferencePage';
import { ModelPage } from '../pages/admin-models/ModelPage';
import { ModelsPage } from '../pages/admin-models/ModelsPage';
import { AuditPage } from '../pages/admin-audit/AuditPage';
import { readAuditSearch } from '../pages/admin-audit/search';
import { ProfilePage } from '../pages/admin-profile/ProfilePage';
import { SandboxPage } from '../pages/admin-sandbox/SandboxPage';
import { SandboxesPage } from '../pages/admin-sandboxes/SandboxesPage';
import { UsersPage } from '../pages/admin-users/UsersPage';
import { WorkspacePage } from '../pages/admin-workspaces/WorkspacePage';
import { WorkspacesPage } from '../pages/admin-workspaces/WorkspacesPage';
import { ArtifactsPage } from '../pages/artifacts/ArtifactsPage';
import { ChatPage } from '../pages/chat/ChatPage';
import { NewThread } from '../pages/chat/NewThread';
import { readChatSearch } from '../pages/chat/search';
import { ThreadPane } from '../pages/chat/ThreadPane';
import { CodeExecutionPage } from '../pages/code-execution/CodeExecutionPage';
import { KnowledgePage } from '../pages/knowledge/KnowledgePage';
import { MembersPage } from '../pages/members/MembersPage';
import { OwnSandboxesPage } from '../pages/sandboxes/OwnSandboxesPage';
import { SetupPage } from '../pages/setup/SetupPage';
import { SignInPage } from '../pages/sign-in/SignInPage';
import { readPreview } from '../parts/preview/usePreview';
import { readListSearch } from '../parts/useListSearch';

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Outlet,
  notFoundComponent: NotFound,
  errorComponent: RouteFailed,
});

const setup = createRoute({ getParentRoute: () => root, path: '/setup', component: SetupPage });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { next?: string } =>
    // A path of our own and nothing that a browser takes for another host.
    typeof search.next === 'string' && /^\/(?![/\\])/.test(search.next)
      ? { next: search.next }
      : {},
  component: SignInPage,
});

const apiReference = createRoute({
  getParentRoute: () => root,
  path: '/api/v1/docs',
  component: ApiReferencePage,
});

const frame = createRoute({
  getParentRoute: () => root,
  id: 'frame',
  component: Frame,
  errorComponent: RouteFailed,
  notFoundComponent: NotFound,
  beforeLoad: async ({ context, location }) => {
    try {
      return { session: await context.queries.query({ ...sessionQuery, staleTime: 'static' }) };
    } catch (error) {
      if (!(error instanceof Failure) || error.status !== 401) throw error;
      const { needs_setup } = await context.queries.query(setupQuery);
      if (needs_setup) throw redirect({ to: '/setup' });
      throw redirect({ to: '/sign-in', search: { next: location.href } });
    }
  },
});

const home = createRoute({
  getParentRoute: () => frame,
  path: '/',
  beforeLoad: ({ context }) => {
    const { memberships, user } = context.session;
    const workspace = memberships[0]?.workspace_id;
    if (workspace !== undefined) {
      throw redirect({ to: '/w/$workspace/chat', params: { workspace } });
    }
    throw redirect({ to: user.is_system_admin ? '/admin/system/sandbox' : '/account' });
  },
});

const chat = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/chat',
  validateSearch: readChatSearch,
  component: ChatPage,
});

const newThread = createRoute({ getParentRoute: () => chat, path: '/', component: NewThread });

const thread = createRoute({ getParentRoute: () => chat, path: '$thread', component: ThreadPane });

/** A list of files beside which one of them can be looked at. */
const readFileListSearch = (search: Record<string, unknown>) => ({
  ...readListSearch(search),
  ...readPreview(search),
});

const artifacts = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/artifacts',
  validateSearch: readFileListSearch,
  component: ArtifactsPage,
});

const knowledge = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/knowledge',
  validateSearch: readFileListSearch,
  component: KnowledgePage,
});

const codeExecution = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/code-execution',
  component: CodeExecutionPage,
});

const members = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/members',
  validateSearch: readListSearch,
  component: MembersPage,
});

const ownSandboxes = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/sandboxes',
  validateSearch: readListSearch,
  component: OwnSandboxesPage,
});

const account = createRoute({
  getParentRoute: () => frame,
  path: '/account',
  validateSearch: (search: Record<string, unknown>): { workspace?: string } =>
    typeof search.workspace === 'string' ? { workspace: search.workspace } : {},
  component: AccountPage,
});

const admin = createRoute({
  getParentRoute: () => frame,
  id: 'admin',
  component: Outlet,
  notFoundComponent: NotFound,
  beforeLoad: ({ context }) => {
    if (!context.session.user.is_system_admin) throw notFound();
  },
});

const sandbox = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/sandbox',
  validateSearch: readListSearch,
  component: SandboxPage,
});

const profile = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/sandbox/$profile',
  component: ProfilePage,
});

const models = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/models',
  validateSearch: readListSearch,
  component: ModelsPage,
});

const model = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/models/$model',
  component: ModelPage,
});

const sandboxes = createRoute({
  getParentRoute: () => admin,
  path: '/admin/sandboxes',
  validateSearch: readListSearch,
  component: SandboxesPage,
});

const workspaces = createRoute({
  getParentRoute: () => admin,
  path: '/admin/workspaces',
  validateSearch: readListSearch,
  component: WorkspacesPage,
});

const workspace = createRoute({
  getParentRoute: () => admin,
  path: '/admin/workspaces/$workspace',
  component: WorkspacePage,
});

const users = createRoute({
  getParentRoute: () => admin,
  path: '/admin/users',
  validateSearch: readListSearch,
  component: UsersPage,
});

const audit = createRoute({
  getParentRoute: () => admin,
  path: '/admin/audit',
  validateSearch: readAuditSearch,
  component: AuditPage,
});

const tree = root.addChildren([
  setup,
  signIn,
  apiReference,
  frame.addChildren([
    home,
    chat.addChildren([newThread, thread]),
    artifacts,
    knowledge,
    codeExecution,
    members,
    ownSandboxes,
    account,
    admin.addChildren([
      sandbox,
      profile,
      models,
      model,
      sandboxes,
      workspaces,
      workspace,
      users,
      audit,
    ]),
  ]),
]);

export const makeRouter = (queries: QueryClient) =>
  createRouter({ routeTree: tree, context: { queries }, defaultPreload: false });

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
