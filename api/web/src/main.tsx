import { createRoot } from "react-dom/client";

import { App } from "./app";
import "./styles.css";
import "./ui/ui.css";

const root = document.getElementById("root");
if (root) createRoot(root).render(<App />);
