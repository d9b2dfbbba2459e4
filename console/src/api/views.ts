import type { components } from './schema';

type Schemas = components['schemas'];

export type ApiKey = Schemas['ApiKeyView'];
export type Artifact = Schemas['ArtifactView'];
export type Attachment = Schemas['AttachmentView'];
export type AuditEntry = Schemas['AuditView'];
export type ChangedModel = Schemas['ChangedModelView'];
export type ChatState = Schemas['ChatView'];
export type CheckRecord = Schemas['CheckView'];
export type ClassName = Schemas['ClassName'];
export type CodeExecution = Schemas['CodeExecutionView'];
export type Denied = Schemas['DeniedView'];
export type Deployment = Schemas['DeploymentView'];
export type KnowledgeFile = Schemas['KnowledgeFileView'];
export type LiveSandbox = Schemas['LiveSandboxView'];
export type Member = Schemas['MemberView'];
export type Meters = Schemas['MetersView'];
export type Model = Schemas['ModelView'];
export type ModelTest = Schemas['ModelTestView'];
export type ModelTestStep = Schemas['ModelTestStepView'];
export type Preview = Schemas['PreviewView'];
export type PreviewPage = Schemas['Page'];
export type PreviewSheet = Schemas['Sheet'];
export type ProfileDetail = Schemas['ProfileDetailView'];
export type Quotas = Schemas['QuotasView'];
export type RoleName = Schemas['RoleName'];
export type Sandbox = Schemas['SandboxView'];
export type Session = Schemas['SessionDocument'];
export type Sheet = Schemas['SheetView'];
export type SheetCell = Schemas['Cell'];
export type SignIn = Schemas['SessionView'];
export type Thread = Schemas['ThreadView'];
export type UploadLimits = Schemas['ChatLimitsView'];
export type User = Schemas['UserView'];
export type Workspace = Schemas['WorkspaceView'];

export const CLASSES: readonly ClassName[] = ['SMALL', 'MEDIUM', 'LARGE'];
export const ROLES: readonly RoleName[] = ['viewer', 'editor', 'admin', 'owner'];

/** A role as the API names it; what is not known counts as the least. */
export const roleOf = (text: string): RoleName => ROLES.find((role) => role === text) ?? 'viewer';
/** Whether a role lets somebody run code, and make keys for programs that do. */
export const mayRunCode = (role: RoleName): boolean => role !== 'viewer';
