// Types of "cloudsandbox/report".
import type { WrittenRecord } from "./records.js";

export interface ReportOptions {
  /** Heading of the page. Default: the name of the file. */
  title?: string | undefined;
}

/**
 * Writes a page of what recordTo() has written to `file`: one HTML file without scripts, which needs no server and nothing
 * from elsewhere. It is made for its owner only, since it shows outputs where they were recorded.
 */
export function writeReport(file: string, output: string, options?: ReportOptions): Promise<{ records: number; damaged: number }>;

/** The same page as text, of records at hand. */
export function reportOf(records: Iterable<WrittenRecord>, options?: ReportOptions & { damaged?: number }): string;
