import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// `npm run dev` serves the page from sources and passes API calls to a running `blockwright serve`.
const service = process.env.BLOCKWRIGHT_URL ?? "http://127.0.0.1:8400";
const forwarded = { target: service, changeOrigin: true };

export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    // Fonts and images as files: the content policy allows no data: but for images.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1200,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": forwarded, "/version": forwarded } },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
