import react from "@vitejs/plugin-react";
import type { ProxyOptions } from "vite";
import { defineConfig } from "vitest/config";

// `npm run dev` serves the page from sources and passes API calls to a running `blockwright serve`, which takes changes
// only from its own address: so they are passed on as a program sends them, without the development server's Origin.
const forwarded: ProxyOptions = {
  target: process.env.BLOCKWRIGHT_URL ?? "http://127.0.0.1:8400",
  changeOrigin: true,
  configure: (proxy) => proxy.on("proxyReq", (request) => request.removeHeader("origin")),
};

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
