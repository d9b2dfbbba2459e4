import { Page } from '../../parts/Page';
import { Keys } from './Keys';
import { Password } from './Password';
import { SignIns } from './SignIns';

export const AccountPage = () => (
  <Page title="Your account">
    <Keys />
    <Password />
    <SignIns />
  </Page>
);
