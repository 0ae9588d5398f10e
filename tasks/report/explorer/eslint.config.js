import js from "@eslint/js";

export default [
  js.configs.recommended,
  {
    rules: {
      curly: ["error", "multi-line"],
      "max-len": ["error", 120],
      "max-lines": ["error", 350],
      "max-lines-per-function": ["error", 59],
      "no-nested-ternary": "error",
      "one-var": ["error", "never"],
      // tsc looks for these, and knows the browser's names.
      "no-undef": "off",
      "no-unused-vars": "off",
    },
  },
];
