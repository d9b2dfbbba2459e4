import { Anchor, Button, Container } from '@mantine/core';
import { type ErrorComponentProps, Link } from '@tanstack/react-router';
import { FailureNote } from '../parts/FailureNote';
import { Page } from '../parts/Page';

/** There is no such page, or it is not for this person: the two look alike. */
export function NotFound() {
  return (
    <Container py="lg">
      <Page title="There is no such page" about="It was moved, or it is not yours to see.">
        <Anchor component={Link} to="/">
          Go to the first page
        </Anchor>
      </Page>
    </Container>
  );
}

export function RouteFailed({ error }: ErrorComponentProps) {
  return (
    <Container py="lg">
      <Page title="This page did not load">
        <FailureNote error={error} />
        <div>
          <Button variant="default" onClick={() => window.location.reload()}>
            Load the page again
          </Button>
        </div>
      </Page>
    </Container>
  );
}
