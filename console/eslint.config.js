import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import { defineConfig, globalIgnores } from 'eslint/config';
import types from 'typescript-eslint';

export default defineConfig([
  globalIgnores(['dist', 'src/api/schema.d.ts']),
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [
      js.configs.recommended,
      types.configs.strictTypeChecked,
      types.configs.stylisticTypeChecked,
      hooks.configs.flat['recommended-latest'],
    ],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // The router's way to leave a page is to throw a redirect.
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
    },
  },
]);
