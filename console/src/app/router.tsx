import { type QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  notFound,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { Failure } from '../api/failure';
import { sessionQuery, setupQuery } from '../api/queries';
import { Frame } from '../frame/Frame';
import { NotFound, RouteFailed } from '../frame/Lost';
import { readAuditSearch } from '../pages/admin-audit/search';
import { readChatSearch } from '../pages/chat/search';
import { Loading } from '../parts/Loading';
import { readPreview } from '../parts/preview/usePreview';
import { readListSearch } from '../parts/useListSearch';

// Each page is loaded when somebody goes to it, or is about to; what all of them use is there.

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Outlet,
  notFoundComponent: NotFound,
  errorComponent: RouteFailed,
});

const setup = createRoute({
  getParentRoute: () => root,
  path: '/setup',
  component: lazyRouteComponent(() => import('../pages/setup/SetupPage'), 'SetupPage'),
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: (search: Record<string, unknown>): { next?: string } =>
    // A path of our own and nothing that a browser takes for another host.
    typeof search.next === 'string' && /^\/(?![/\\])/.test(search.next)
      ? { next: search.next }
      : {},
  component: lazyRouteComponent(() => import('../pages/sign-in/SignInPage'), 'SignInPage'),
});

const apiReference = createRoute({
  getParentRoute: () => root,
  path: '/api/v1/docs',
  component: lazyRouteComponent(
    () => import('../pages/api-reference/ApiReferencePage'),
    'ApiReferencePage',
  ),
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
  component: lazyRouteComponent(() => import('../pages/chat/ChatPage'), 'ChatPage'),
});

const newThread = createRoute({
  getParentRoute: () => chat,
  path: '/',
  component: lazyRouteComponent(() => import('../pages/chat/NewThread'), 'NewThread'),
});

const thread = createRoute({
  getParentRoute: () => chat,
  path: '$thread',
  component: lazyRouteComponent(() => import('../pages/chat/ThreadPane'), 'ThreadPane'),
});

/** A list of files beside which one of them can be looked at. */
const readFileListSearch = (search: Record<string, unknown>) => ({
  ...readListSearch(search),
  ...readPreview(search),
});

const artifacts = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/artifacts',
  validateSearch: readFileListSearch,
  component: lazyRouteComponent(() => import('../pages/artifacts/ArtifactsPage'), 'ArtifactsPage'),
});

const knowledge = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/knowledge',
  validateSearch: readFileListSearch,
  component: lazyRouteComponent(() => import('../pages/knowledge/KnowledgePage'), 'KnowledgePage'),
});

const codeExecution = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/code-execution',
  component: lazyRouteComponent(
    () => import('../pages/code-execution/CodeExecutionPage'),
    'CodeExecutionPage',
  ),
});

const members = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/members',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('../pages/members/MembersPage'), 'MembersPage'),
});

const ownSandboxes = createRoute({
  getParentRoute: () => frame,
  path: '/w/$workspace/sandboxes',
  validateSearch: readListSearch,
  component: lazyRouteComponent(
    () => import('../pages/sandboxes/OwnSandboxesPage'),
    'OwnSandboxesPage',
  ),
});

const account = createRoute({
  getParentRoute: () => frame,
  path: '/account',
  validateSearch: (search: Record<string, unknown>): { workspace?: string } =>
    typeof search.workspace === 'string' ? { workspace: search.workspace } : {},
  component: lazyRouteComponent(() => import('../pages/account/AccountPage'), 'AccountPage'),
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
  component: lazyRouteComponent(() => import('../pages/admin-sandbox/SandboxPage'), 'SandboxPage'),
});

const profile = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/sandbox/$profile',
  component: lazyRouteComponent(() => import('../pages/admin-profile/ProfilePage'), 'ProfilePage'),
});

const models = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/models',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('../pages/admin-models/ModelsPage'), 'ModelsPage'),
});

const model = createRoute({
  getParentRoute: () => admin,
  path: '/admin/system/models/$model',
  component: lazyRouteComponent(() => import('../pages/admin-models/ModelPage'), 'ModelPage'),
});

const sandboxes = createRoute({
  getParentRoute: () => admin,
  path: '/admin/sandboxes',
  validateSearch: readListSearch,
  component: lazyRouteComponent(
    () => import('../pages/admin-sandboxes/SandboxesPage'),
    'SandboxesPage',
  ),
});

const workspaces = createRoute({
  getParentRoute: () => admin,
  path: '/admin/workspaces',
  validateSearch: readListSearch,
  component: lazyRouteComponent(
    () => import('../pages/admin-workspaces/WorkspacesPage'),
    'WorkspacesPage',
  ),
});

const workspace = createRoute({
  getParentRoute: () => admin,
  path: '/admin/workspaces/$workspace',
  component: lazyRouteComponent(
    () => import('../pages/admin-workspaces/WorkspacePage'),
    'WorkspacePage',
  ),
});

const users = createRoute({
  getParentRoute: () => admin,
  path: '/admin/users',
  validateSearch: readListSearch,
  component: lazyRouteComponent(() => import('../pages/admin-users/UsersPage'), 'UsersPage'),
});

const audit = createRoute({
  getParentRoute: () => admin,
  path: '/admin/audit',
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import('../pages/admin-audit/AuditPage'), 'AuditPage'),
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
  createRouter({
    routeTree: tree,
    context: { queries },
    // Whoever points at a link finds its page loaded.
    defaultPreload: 'intent',
    defaultPendingComponent: Loading,
  });

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
