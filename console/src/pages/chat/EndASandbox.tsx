import { Anchor } from '@mantine/core';
import { Link, useParams } from '@tanstack/react-router';

/** The way to make room, where a workspace has all the sandboxes that it may have at once. */
export function EndASandbox({ code }: { code: string | null | undefined }) {
  const workspace = useParams({ strict: false, select: (params) => params.workspace });
  if (code !== 'quota:max_concurrent' || workspace === undefined) return null;
  return (
    <div>
      <Anchor component={Link} to={`/w/${workspace}/sandboxes`}>
        End a sandbox of yours that you do not need
      </Anchor>
    </div>
  );
}
